// The stores that most limiters have: of the default algorithm with one window. This file is
// compiled for speed and linked first, all others are compiled for size.
#include "core/algorithms.h"
#include "memory/heap_logs.h"
#include "memory/inline_logs.h"
#include "memory/table_store.h"

namespace rollgate::memory {

using Log = ShortLog<SingleWindowPolicy>;

template class TableStore<Log, InlineLogs<Log>>;
template class TableStore<Log, HeapLogs<Log>>;

}  // namespace rollgate::memory
