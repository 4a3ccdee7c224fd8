// Growth, shrinking and the order of expiry over both sub-tables.
#include "memory/table.h"

#include <cstring>
#include <utility>

namespace rollgate::memory {
namespace {

// Measured: searches stay short up to this load, and chunks with an uneven share have room left.
constexpr double kFullLoad = 0.8;
constexpr double kEmptyLoad = 0.2;
constexpr double kLoadAfterShrinking = 0.55;
// Small steps keep the load between 0.61 and 0.8 while the table grows.
constexpr double kGrowth = 1.3;

std::size_t ChunksFor(std::size_t keys, double load) {
  return static_cast<std::size_t>(static_cast<double>(keys) /
                                  (load * static_cast<double>(SubTable::kSlotsPerChunk))) +
         1;
}

}  // namespace

Table::Table(const TableOptions& options)
    : layout_(options.payload_bytes),
      max_keys_(options.max_keys),
      retention_(options.retention),
      forgets_expired_(options.forgets_expired),
      few_ids_(options.few_ids),
      secret_(options.secret),
      active_(1) {
  assert(max_keys_ >= 1 && retention_ >= 0);
  active_.Prepare(layout_, 0, 1);
}

Place Table::FindInEither(const Identity& identity, std::uint64_t hash) {
  const std::size_t chunk = draining_->AddressOf(hash).chunk;
  if (chunk <= cursor_chunk_) {
    const Place place = active_.Find(layout_, identity, hash);
    if (place || chunk < cursor_chunk_) return place;
  }
  Place place = draining_->Find(layout_, identity, hash);
  place.in_draining = true;
  return place;
}

Place Table::Nearest(std::size_t& looks) {
  assert(live() > 0);
  while (looks > 0) {
    --looks;
    SubTable& part = EarliestPart();
    Place place = part.Tighten(layout_, looks);
    place.in_draining = &part != &active_;
    if (place) return place;
  }
  return {};
}

void Table::Resize() {
  if (draining_) return;
  const std::size_t chunks = active_.chunk_count();
  const double load =
      static_cast<double>(active_.live()) / static_cast<double>(chunks * SubTable::kSlotsPerChunk);
  if (load >= kFullLoad) {
    const auto next = static_cast<std::size_t>(static_cast<double>(chunks) * kGrowth);
    Begin(std::min(std::max(next, chunks + 1), ChunksFor(max_keys_, kFullLoad)));
  } else if (load < kEmptyLoad && chunks > 1) {
    Begin(ChunksFor(active_.live(), kLoadAfterShrinking));
  }
}

void Table::Begin(std::size_t chunk_count) {
  if (chunk_count == active_.chunk_count()) return;
  assert(!draining_ && chunk_count >= 1);
  SubTable next(chunk_count);
  PrepareFor(active_, 0, next);
  ForgetPlaces();
  draining_.emplace(std::exchange(active_, std::move(next)));
  cursor_chunk_ = 0;
  cursor_group_ = 0;
  swept_chunks_ = swept_groups_ = 0;
}

void Table::PrepareFor(const SubTable& from, std::size_t chunk, SubTable& to) const {
  // In 64 bits, also where a size has 32.
  const auto place = [&](std::uint64_t index) {
    return static_cast<std::size_t>(index * to.chunk_count() / from.chunk_count());
  };
  const std::size_t last = place(chunk + 1);
  for (std::size_t i = place(chunk); i <= last && i < to.chunk_count(); ++i) {
    to.Prepare(layout_, i, SubTable::kGroupsPerChunk);
  }
}

void Table::Move(std::size_t groups) {
  if (draining_) ForgetPlaces();
  for (; groups > 0 && draining_; --groups) {
    Chunk& chunk = draining_->chunk(cursor_chunk_);
    if (cursor_group_ < chunk.group_count()) {
      chunk.VisitGroup(layout_, cursor_group_, [this](const Place& from) {
        const std::uint64_t hash = HashAt(from);
        const Place to = active_.Insert(layout_, secret_, hash, from.slot->moment());
        std::memcpy(static_cast<void*>(to.slot), from.slot, layout_.slot_bytes);
        draining_->Erase(from, hash);
        assert(HashAt(to) == hash);
      });
      ++cursor_group_;
    }
    if (cursor_group_ == chunk.group_count()) AdvanceCursor();
  }
}

void Table::AdvanceCursor() {
  const std::size_t next = cursor_chunk_ + 1;
  // First, so that the cursor stays where all ids can be found if memory runs out.
  if (next < draining_->chunk_count()) PrepareFor(*draining_, next, active_);
  draining_->Release(layout_, cursor_chunk_);
  cursor_chunk_ = next;
  cursor_group_ = 0;
  if (next < draining_->chunk_count()) return;
  assert(draining_->live() == 0);
  draining_.reset();
}

void Table::PrepareForEvictions() {
  // In a smaller table, evictions are cheap.
  const bool is_nearly_full =
      max_keys_ >= SubTable::kSlotsPerChunk && live() >= max_keys_ / 16 * 15;
  if (is_nearly_full && !is_nearly_full_) swept_chunks_ = swept_groups_ = 0;
  is_nearly_full_ = is_nearly_full;
  if (!is_nearly_full || Sweep() || draining_) return;
  if (++next_tightened_ >= active_.chunk_count()) next_tightened_ = 0;
  active_.TightenChunk(next_tightened_);
}

bool Table::Sweep() {
  for (std::size_t i = 0; i < kSweptPerStep; ++i) {
    const bool in_active = swept_chunks_ < active_.chunk_count();
    const std::size_t chunk = in_active ? swept_chunks_ : swept_chunks_ - active_.chunk_count();
    if (!in_active && (!draining_ || chunk >= draining_->chunk_count())) return i > 0;
    SubTable& part = in_active ? active_ : *draining_;
    swept_groups_ = part.TightenGroup(layout_, chunk, swept_groups_);
    if (swept_groups_ == 0) ++swept_chunks_;
  }
  return true;
}

SubTable Table::Empty() const {
  SubTable empty(1);
  empty.Prepare(layout_, 0, 1);
  return empty;
}

void Table::Restart(SubTable empty) {
  ForgetPlaces();
  draining_.reset();
  active_ = std::move(empty);
  assert(live() == 0);
  forgotten_until_ = kLongAgo;
}

}  // namespace rollgate::memory
