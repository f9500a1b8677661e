import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # literal.py and problems.py

# Whoever starts the tests in the background may have let them ignore Ctrl-C, and what they start
# with them; several tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
