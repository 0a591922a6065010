import sys
from pathlib import Path

# A helper that several files share is imported by name.
sys.path.insert(0, str(Path(__file__).parent))
