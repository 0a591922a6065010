import sys
from pathlib import Path

# The references beside the tests are imported by name.
sys.path.insert(0, str(Path(__file__).parent))
