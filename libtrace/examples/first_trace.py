#!/usr/bin/env python3
"""A trace from Python without libtorch: libtorchtrace through ctypes.

    TORCH_TRACE=/tmp/trace python3 first_trace.py && tlparse /tmp/trace

The library is found as the loader finds it (LD_LIBRARY_PATH, ldconfig). Every function that returns a handle
needs its restype: ctypes would cut pointers to 32 bits.
"""
import ctypes

trace = ctypes.CDLL("libtorchtrace.so.0")


class Site(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("function", ctypes.c_char_p), ("line", ctypes.c_uint32)]


class Stats(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("record_count", ctypes.c_uint64), ("size_bytes", ctypes.c_uint64),
                ("lost_record_count", ctypes.c_uint64)]


trace.libtrace_compile_begin.restype = ctypes.c_void_p
trace.libtrace_compile_begin.argtypes = [ctypes.POINTER(Site), ctypes.c_uint32, ctypes.c_uint32, ctypes.c_char_p,
                                         ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t]
trace.libtrace_compile_metric.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
trace.libtrace_compile_end.argtypes = [ctypes.c_void_p]
trace.libtrace_new_frame.restype = ctypes.c_uint32

site = Site(__file__.encode(), b"<module>", 40)  # must live until the compile ends
compile_ = trace.libtrace_compile_begin(ctypes.byref(site), trace.libtrace_new_frame(), 0, b"forward", b"model.py", 12, None, 0)
trace.libtrace_compile_metric(compile_, b"graph_op_count", b"7")
trace.libtrace_compile_end(compile_)

stats = Stats(ctypes.sizeof(Stats))
trace.libtrace_get_stats(ctypes.byref(stats))
print(f"{stats.record_count} records written, {stats.lost_record_count} lost")
