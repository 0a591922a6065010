import sys
from pathlib import Path

# The cases that several files share are imported by name.
sys.path.insert(0, str(Path(__file__).parent))
