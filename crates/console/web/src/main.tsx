// The web console: starts the page.
import { render } from "preact";
import { App } from "./app";
import { applyTheme } from "./theme";
import "./console.css";

applyTheme();
const root = document.getElementById("app");
if (root) render(<App />, root);
