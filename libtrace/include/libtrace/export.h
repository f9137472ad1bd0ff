// LIBTRACE_EXPORT: what a shared library of libtrace shows to programs; everything else is hidden.
#pragma once

#define LIBTRACE_EXPORT __attribute__((visibility("default")))
