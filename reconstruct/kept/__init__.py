"""What a run leaves for the next, so that only what is new is made anew: what it read and wrote, what each fold was
given and asked, whether anything of a topic or a file is another, and since when each finding stands. How a fold is
done, and what its rows mean, is not here.
"""
