# `make` lists the commands. PYTHON=/path/to/python3.13 chooses the interpreter that .venv is made of.
.DEFAULT_GOAL := help
.PHONY: help up test check bench docs
py := .venv/bin/python
export PYTHON
unexport PYTHONDONTWRITEBYTECODE  # processes start a second sooner when their modules are compiled

help:  ## this list
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/make \1\t\2/' | expand -t 14

up:  ## everything on this machine: database, broker, workers, sweeper, web, demo (Ctrl-C ends it)
	@bin/bootstrap && exec $(py) manage.py up $(ARGS)

test:  ## all tests, each against a real PostgreSQL
	@bin/bootstrap && exec $(py) -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

check:  ## style, types, import rules, migrations, deployment settings, lock file
	@bin/bootstrap && bin/check

bench:  ## speed, next to DBOS on the same PostgreSQL
	@bin/bootstrap && exec $(py) -m bench $(ARGS)

docs:  ## the manual with its search, in docs/_build
	@bin/bootstrap && exec $(py) -m sphinx -q -W --keep-going -c docs -b html . docs/_build
