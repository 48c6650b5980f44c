"""A campaign's log as a page of HTML: served while it runs, or as a file for the records."""
