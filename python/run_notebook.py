"""python3 python/run_notebook.py FILE.ipynb - run a notebook's cells in order; the first that fails ends it"""
import json
import sys

names = {"__name__": "__main__"}
for number, cell in enumerate(json.load(open(sys.argv[1]))["cells"], 1):
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), "cell %d" % number, "exec"), names)
