"""What judging gives: verdicts, findings, and the bugs of Kafka that a finding may be the work of.

Which rules there are is in ``reconstruct/rule_book.py``; the judges are in the room of their subject.
"""
