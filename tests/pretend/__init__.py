"""A pretend accelerator: proof, on a machine without a GPU, that `lib` works on any device.

`accelerator`  a device that computes on the CPU but refuses to mix with it, as a GPU would
`cases`        how to call every public function and module of `lib`
`wrong`        modules with one device mistake each, to prove that the proof catches them
`run`          runs all of it and prints what happened as JSON

It runs in a process of its own (see `test_pretend_device.py`): torch can't unlearn a device.
"""
