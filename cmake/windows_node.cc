// The addon's calls into NODE.EXE go to the program that runs, whatever its name: called before a
// library is loaded late, on Windows.
#include <windows.h>
// After windows.h, on which it stands.
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
ExternC const PfnDliHook __pfnDliNotifyHook2 = FindNode;
