"""Nyima in the frameworks that people use. Each module wants its framework only when it is
imported: ``langgraph``, ``langchain``, ``llamaindex``, ``openai_agents``, ``pydantic_ai``,
``anthropic_memory``, and ``open_webui`` (a file to paste there)."""
