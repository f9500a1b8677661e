import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # bench.py, injection.py and scenarios.py

# The bench forks, and tells the files of descriptors in the manner of Linux.
collect_ignore = [] if sys.platform.startswith("linux") else ["test_commands.py"]
