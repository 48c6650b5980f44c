// Looks every two seconds whether the log has grown, and then takes the page anew.
"use strict";
const state = document.getElementById("state");
let version = document.body.dataset.version;

async function get(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(answer.statusText);
  return answer;
}

async function look() {
  try {
    const now = await (await get("/state.json")).json();
    if (now.version !== version) {
      state.textContent = "Drawing what is new …";
      const other = new DOMParser().parseFromString(await (await get("/")).text(), "text/html");
      document.querySelector("main").replaceWith(other.querySelector("main"));
      version = other.body.dataset.version;
    }
    state.textContent = "Up to date at " + new Date().toLocaleTimeString() + ".";
  } catch (error) {
    state.textContent = "No answer: python -m sklearn_asal watch has ended. Start it again, and load its page.";
  }
  setTimeout(look, 2000);
}

setTimeout(look, 2000);
