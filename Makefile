# Two commands do everything: `make chat` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
CODE := src lab tests tools
FAST := $(addprefix tests/,architecture change examples language mechanisms models papers paths prompts read services stores write)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: chat check test docs clean

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/chat-ready: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[local,skills,docs]'
	touch $@

.venv/test-ready: .venv/bin/python pyproject.toml lab/pyproject.toml constraints.txt
	$(PIP) --editable '.[local,skills,ocr,docs,mcp,server,voice,frameworks,dev]' --editable 'lab[eval,train]'
	touch $@

chat: .venv/chat-ready  ## Talk with a companion that remembers (ARGS="--user karen" for options).
	@$(BIN)/nyima chat $(ARGS)

test: .venv/test-ready  ## All that CI runs.
	tools/system-packages chromium espeak-ng
	$(BIN)/nyima models pull minilm-l6-int8
	$(BIN)/nyima models pull qwen2.5-coder-0.5b
	$(BIN)/nyima models pull whisper-tiny.en
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check --quiet $(CODE)
	$(BIN)/mypy
	NYIMA_REQUIRE_PACKS=1 $(BIN)/pytest -n 2 --dist loadgroup

check: .venv/test-ready  ## Lint, types and the fast tests, in less than a minute.
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check --quiet $(CODE)
	$(BIN)/mypy
	$(BIN)/pytest -n 2 -q $(FAST)

docs: .venv/test-ready  ## Write the generated reference again.
	$(BIN)/python tools/reference.py

clean:
	rm -rf .venv
