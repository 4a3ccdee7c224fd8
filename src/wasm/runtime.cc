// What a program of C++ needs of its runtime here: memory, and exceptions that are caught by
// `catch (...)` alone.
//
// The system's C++ library for WebAssembly is built without exceptions, so its `new` could not
// throw.
#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

/// The room of the one exception that is in flight: each is caught before the next one is thrown.
alignas(std::max_align_t) std::array<std::byte, 64> exception;

[[noreturn]] void Throw() {
  __builtin_wasm_throw(0, exception.data());
}

void* Checked(void* memory) {
  if (memory == nullptr) Throw();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return Checked(std::malloc(size));
}
void* operator new[](std::size_t size) {
  return Checked(std::malloc(size));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Checked(std::aligned_alloc(static_cast<std::size_t>(alignment), size));
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

extern "C" void __wasm_call_ctors();

/// Must be called first. Without it, the linker would let every function for JavaScript begin with
/// the constructors of globals and end with their destructors.
extern "C" __attribute__((export_name("_initialize"))) void Initialize() {
  __wasm_call_ctors();
}

extern "C" char __stack_high;

/// Must be called after an exception of the host left a call, such as an overflow of its own stack:
/// what the call had on the module's stack stays there.
extern "C" __attribute__((export_name("reset_stack"))) void ResetStack() {
  asm volatile(
      ".globaltype __stack_pointer, i32\n"
      "local.get %0\n"
      "global.set __stack_pointer"
      :
      : "r"(&__stack_high));
}

// Source: C++ ABI for Itanium, exception handling.
extern "C" {
void* __cxa_allocate_exception(std::size_t) noexcept {
  return exception.data();
}
void __cxa_free_exception(void*) noexcept {}
[[noreturn]] void __cxa_throw(void*, void*, void (*)(void*)) {
  Throw();
}
[[noreturn]] void __cxa_rethrow() {
  Throw();
}
void* __cxa_begin_catch(void* thrown) noexcept {
  return thrown;
}
void __cxa_end_catch() {}
[[noreturn]] void __cxa_pure_virtual() {
  __builtin_trap();
}
}

namespace std {

[[noreturn]] void terminate() noexcept {
  __builtin_trap();
}

}  // namespace std

// What the library calls where it gives up. Its own would write to a stream, which the host would
// have to give.

/// std::__libcpp_verbose_abort, by the name that the linker knows.
extern "C" [[noreturn]] void VerboseAbort(const char*,
                                          ...) __asm__("_ZNSt3__222__libcpp_verbose_abortEPKcz");
void VerboseAbort(const char*, ...) {
  __builtin_trap();
}

extern "C" [[noreturn]] void abort_message(const char*, ...) {
  __builtin_trap();
}
