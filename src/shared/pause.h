// One pause of a thread that backs off before it tries again.
#pragma once

namespace rollgate::shared {

/// Takes some ten nanoseconds and leaves the core's execution units and its memory bus to others.
inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // Not `yield`, which does nothing on cores without hardware threads.
  asm volatile("isb" ::: "memory");
#elif defined(__arm__)
  asm volatile("yield" ::: "memory");
#else
  asm volatile("" ::: "memory");  // the loop around it must stay
#endif
}

}  // namespace rollgate::shared
