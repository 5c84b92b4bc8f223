"""Instruments: clocks, counters, profiler, memory, hardware. The only place that touches torch's private names."""
