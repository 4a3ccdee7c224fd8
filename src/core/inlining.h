// Compiler attributes of hot and cold functions.
//
// A check is compiled to one function: measured, the calls between its parts cost as much as the
// parts.
#pragma once

#if defined(__GNUC__) && defined(NDEBUG) && !defined(__OPTIMIZE_SIZE__)
// In builds with assertions it would take minutes to compile.
#define ROLLGATE_FLATTEN [[gnu::flatten]]
#else
#define ROLLGATE_FLATTEN
#endif
#if defined(__GNUC__)
#define ROLLGATE_NOINLINE [[gnu::noinline]]
#define ROLLGATE_COLD [[gnu::cold, gnu::noinline]]
#else
#define ROLLGATE_NOINLINE
#define ROLLGATE_COLD
#endif
