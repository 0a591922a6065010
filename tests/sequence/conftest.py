import sys
from pathlib import Path

# For the helpers that the tests of this folder share.
sys.path.insert(0, str(Path(__file__).parent))
