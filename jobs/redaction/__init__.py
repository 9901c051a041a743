"""Pseudonyms for hosts, topics and principals in what is shared: which names there are (``names``), how texts are
rewritten (``pseudonyms``), and a lake that reads so (``lake``). Nothing of it changes the lake it is given."""
