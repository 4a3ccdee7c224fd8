// Any sequence of operations under any policy: the store in memory and the portable limiter decide
// as the oracle does.
#include <cstddef>
#include <cstdint>
#include <string>

#include "support/compared.h"
#include "support/limiter.h"
#include "support/traces.h"

namespace rollgate {
namespace {

void Run(fuzz::Input input) {
  const PolicyOptions policy = fuzz::ReadPolicy(input);
  const std::int64_t smallest_max = testing::SmallestMax(policy);
  testing::Limiter memory(policy);
  testing::Compared id(policy, memory, 1);
  Micros now = input.From(-128);
  constexpr int kMostSteps = 60;  // the oracle takes its time
  for (int step = 0; step < kMostSteps && !input.empty(); ++step) {
    const std::uint8_t operation = input.Byte();
    now += (operation & 8) != 0 ? -input.Between(0, 40) : input.Between(0, 60);
    const auto cost =
        static_cast<std::uint64_t>((operation & 4) != 0 ? input.Between(1, smallest_max) : 1);
    const testing::Oracle::CostsOfWindows costs(policy.windows.size(), cost);
    const std::string wrong = (operation & 3) != 0 ? id.Attempt(now, costs) : id.Peek(now, costs);
    fuzz::Require(wrong.empty(), wrong.c_str());
  }
}

}  // namespace
}  // namespace rollgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rollgate::Run({data, size});
  return 0;
}
