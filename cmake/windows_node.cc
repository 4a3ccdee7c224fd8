// Redirects the addon's imports from NODE.EXE to the running program, whatever its name. Windows calls
// this before it loads a library late.
#include <windows.h>
// Requires windows.h.
#include <delayimp.h>

#include <cstring>

namespace {

FARPROC WINAPI FindNode(unsigned event, PDelayLoadInfo info) {
  if (event != dliNotePreLoadLibrary || _stricmp(info->szDll, "NODE.EXE") != 0) return nullptr;
  return reinterpret_cast<FARPROC>(GetModuleHandleW(nullptr));
}

}  // namespace

// The linker's delay-load code asks for it by this name.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
decltype(__pfnDliNotifyHook2) __pfnDliNotifyHook2 = FindNode;
