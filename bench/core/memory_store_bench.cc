// What does one check cost in the core alone, by number of ids, size of the limit, windows and
// algorithm?
//
// Identities are made beforehand and visited in random order; time moves by a microsecond a check;
// no clock is read. Most checks of few ids are refusals, which count: a record each. There is room
// for twice the ids, but in the full table, where each check also keeps eviction short.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/algorithms.h"
#include "core/identity.h"
#include "memory/memory_store.h"

namespace rollgate {
namespace {

constexpr Secret kSecret{{1, 2, 3, 4, 5, 6}};
constexpr Micros kSecond = 1'000'000;

/// A sixteen-character id for each number, as IdentityOf would pack it.
Identity IdentityOfNumber(std::uint64_t number) {
  return {0x3a72657375ULL | (number & 0xffffff) << 40, number * 0x9e3779b97f4a7c15ULL, 16};
}

MemoryStoreOptions StoreOptions(std::size_t max_keys) {
  MemoryStoreOptions options;
  options.max_keys = max_keys;
  options.secret = kSecret;
  return options;
}

void Check(benchmark::State& state, std::size_t ids, const PolicyOptions& options,
           std::size_t max_keys) {
  const auto store = CreateMemoryStore(Policy(options), StoreOptions(max_keys));
  Micros now = 0;
  for (std::uint32_t i = 0; i < ids; ++i) store->Check(IdentityOfNumber(i), ++now);

  std::vector<std::uint32_t> order(1 << 20);
  std::mt19937_64 random(1);
  for (auto& next : order) next = static_cast<std::uint32_t>(random() % ids);
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(store->Check(IdentityOfNumber(order[i]), ++now));
    i = (i + 1) & (order.size() - 1);
  }
  state.counters["bytes_per_id"] =
      static_cast<double>(store->stats().bytes) / static_cast<double>(ids);
}

std::size_t WithRoom(std::size_t ids) {
  return 2 * ids + 1000;
}

void BM_Check(benchmark::State& state) {
  const auto max = static_cast<std::uint64_t>(state.range(1));
  PolicyOptions options{{{60 * kSecond, max}}, 0, true};
  if (state.range(2) == 3) {
    options.windows.push_back({600 * kSecond, max * 2});
    options.windows.push_back({3600 * kSecond, max * 3});
  }
  const auto ids = static_cast<std::size_t>(state.range(0));
  Check(state, ids, options, WithRoom(ids));
}

void BM_FullTable(benchmark::State& state) {
  const auto ids = static_cast<std::size_t>(state.range(0));
  Check(state, ids, {{{60 * kSecond, 5}}, 0, true}, ids);
}

void BM_Algorithm(benchmark::State& state, Algorithm algorithm) {
  const bool count_blocked = algorithm != Algorithm::kGcra;
  const auto ids = static_cast<std::size_t>(state.range(0));
  Check(state, ids, {{{60 * kSecond, 5}}, 0, count_blocked, algorithm}, WithRoom(ids));
}

// Many ids get a number of checks that is given, or they would be filled in anew for every guess at
// it.
constexpr benchmark::IterationCount kChecks = 2'000'000;

BENCHMARK(BM_Check)
    ->ArgNames({"ids", "max", "windows"})
    ->ArgsProduct({{1, 10'000}, {5, 100}, {1, 3}});
BENCHMARK(BM_Check)
    ->ArgNames({"ids", "max", "windows"})
    ->ArgsProduct({{1'000'000, 10'000'000}, {5, 100}, {1, 3}})
    ->Iterations(kChecks);

BENCHMARK(BM_FullTable)->ArgName("ids")->Arg(1'000'000)->Iterations(kChecks);

BENCHMARK_CAPTURE(BM_Algorithm, counter, Algorithm::kSlidingWindowCounter)->Arg(1);
BENCHMARK_CAPTURE(BM_Algorithm, fixed_window, Algorithm::kFixedWindow)->Arg(1);
BENCHMARK_CAPTURE(BM_Algorithm, gcra, Algorithm::kGcra)->Arg(1);
BENCHMARK_CAPTURE(BM_Algorithm, counter, Algorithm::kSlidingWindowCounter)
    ->Arg(1'000'000)
    ->Iterations(kChecks);
BENCHMARK_CAPTURE(BM_Algorithm, fixed_window, Algorithm::kFixedWindow)
    ->Arg(1'000'000)
    ->Iterations(kChecks);
BENCHMARK_CAPTURE(BM_Algorithm, gcra, Algorithm::kGcra)->Arg(1'000'000)->Iterations(kChecks);

}  // namespace
}  // namespace rollgate
