"""What ZooKeeper held: its own files, and our snapshots of the znodes."""
