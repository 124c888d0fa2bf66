# The notebook's cells, run as tests do; in Jupyter it is the same. It needs the installed library, or FORETOKEN_LIBRARY.
cd "$(dirname "$0")"
if [ -n "${FORETOKEN_LIBRARY:-}" ]; then
	PYTHONPATH=../../python python3 ../../python/run_notebook.py sizing.ipynb
else
	echo "sizing.ipynb: see README.md, The library"
fi
