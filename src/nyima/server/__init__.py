"""The server: proxy, REST, MCP and the web page over one memory file."""
