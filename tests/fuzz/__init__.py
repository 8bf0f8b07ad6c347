"""Fuzzing: each target reads bytes that others may have written, and has one outcome for them, its value or one refusal.

make fuzz MINUTES=5              each target for so many minutes of processor time, guided by coverage (atheris)
make fuzz MINUTES=60 ONLY=date   those whose name has this in it
tests/fuzz/corpus/TARGET/        inputs that are kept: what was found, and what reaches most of the code; each test run reads them
benchmarks/results/fuzzing.md    minutes, inputs and findings of each target, added up
"""
