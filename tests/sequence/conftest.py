import sys
from pathlib import Path

# What the tests share is imported by name.
sys.path.insert(0, str(Path(__file__).parent))
