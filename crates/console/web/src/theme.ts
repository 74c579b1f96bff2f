// Light or dark: as the system says, or as the reader chose.
import { Store } from "./api";
import { painted } from "./charts";

export type Theme = "system" | "light" | "dark";
const KEY = "plimsoll-theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

export const theme = new Store<Theme>(stored());

export function applyTheme(): void {
  if (theme.value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.value;
  painted.set(painted.value + 1);
}

export function choose(value: Theme): void {
  theme.set(value);
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // Kept for this page only.
  }
  applyTheme();
}
