# Two commands matter: `make book` shows the course, `make test` proves it. What they do is in course/, in Python.
# On a machine where pip would fetch CUDA builds of torch, take PyTorch's CPU build: make test CPU=1

PYTHON ?= python3
PY = .venv/bin/python
CH ?=
CPU ?=
PIP = $(PY) -m pip install --quiet --disable-pip-version-check
TORCH_CPU = --index-url https://download.pytorch.org/whl/cpu

.PHONY: help book serve run test bench lock format clean
help:  ## list the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 10

book: .venv/site  ## build the website from the stored outputs (installs no torch)
	@$(PY) -m course book

serve: book  ## build it, then serve it on this machine alone
	@$(PY) -m course serve

run: .venv/full  ## derive, execute and clean chapters: all, or one with CH=03
	@$(PY) -m course run $(CH)

test: .venv/full  ## prove everything: style, lib, every notebook, every page
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m pytest -n 2 --dist loadscope

bench: .venv/full  ## print the table of timings
	@$(PY) -m course bench

lock: .venv/full  ## write requirements.txt anew from pyproject.toml
	@$(PIP) pip-tools==7.6.2
	@$(PY) -m course lock

format: .venv/full  ## put the code in the house style
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

clean:  ## remove the environment and all that was built
	rm -rf .venv _build course/site/node_modules

# The two environments are one folder, filled in two steps; an empty file marks each as done.
.venv/bin/python:
	@echo "setting up .venv ..."
	@$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or newer is needed"'
	@$(PYTHON) -m venv .venv || { echo "On Debian: apt-get install python3-venv"; exit 1; }

.venv/site: requirements.txt pyproject.toml | .venv/bin/python
	@echo "installing what the site needs ..."
	@$(PY) -m course extra site > .venv/site.txt
	@$(PIP) -r .venv/site.txt -c requirements.txt
	@touch $@

.venv/full: requirements.txt pyproject.toml | .venv/bin/python
	@echo "installing what chapters and tests need ..."
	@$(if $(CPU),$(PIP) $(TORCH_CPU) $$(grep '^torch==' requirements.txt))
	@$(PIP) -r requirements.txt
	@touch .venv/site $@
