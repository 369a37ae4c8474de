"""Grading: find the student's work, run it where it can do no harm, check the results here, write the marks down.

wire       data across a pipe, in a form that can't execute anything
inside     what runs in the sandbox, with the student's code
sandbox    bubblewrap around it, limits, and the trusted end of the pipe
"""
