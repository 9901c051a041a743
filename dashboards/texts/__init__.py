"""What people get as plain text: an incident, the draft of a postmortem, the merged lines of the logs."""
