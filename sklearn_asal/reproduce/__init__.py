"""The paper's other tables and figures, as grids that can be resumed."""
