"""The web page: server-rendered, with a little htmx; every asset is in the package."""
