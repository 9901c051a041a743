"""What holds the program to what it promises."""

from pathlib import Path
from typing import Final

#: The checkout, of which the tests read the documents and run the program.
ROOT: Final = Path(__file__).resolve().parents[1]
