"""The browser: the page and the JSON API, on this machine."""
