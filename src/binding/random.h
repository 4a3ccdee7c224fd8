// Random numbers of the system.
#pragma once

#include <cstdint>

namespace rollgate::binding {

/// 64 bits that nobody can foretell. Throws std::runtime_error if the system has none to give.
std::uint64_t RandomWord();

}  // namespace rollgate::binding
