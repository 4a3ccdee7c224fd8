// One pause of a thread that backs off before it tries again.
#pragma once

namespace rollgate::shared {

/// Waits some ten nanoseconds and leaves the core's units and the memory bus to others.
inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // Not `yield`, which does nothing on cores without hardware threads.
  asm volatile("isb" ::: "memory");
#elif defined(__arm__)
  asm volatile("yield" ::: "memory");
#else
  asm volatile("" ::: "memory");  // keeps the loop around it
#endif
}

}  // namespace rollgate::shared
