// Ids come to the table, rest, and go.
#include "memory/held_counts.h"

#include <utility>

namespace rollgate::memory {
namespace {

void KeepNothing(Slot&) {}

}  // namespace

Held* HeldCounts::Begin(const Identity& id) {
  auto held = spare_ ? std::exchange(spare_, nullptr) : std::make_unique<Held>();
  *held = {.id = id};
  const Place place = table_.Insert(id, 0, 0, KeepNothing);
  StoreAs(place.slot->payload(), held.get());
  return held.release();
}

void HeldCounts::Rest(Held* held) {
  --held_ids_;
  if (held->idle_place == Held::kNotIdle) MakeIdle(held);
  if (held_ids_ == 0) Shrink();
}

void HeldCounts::MakeIdle(Held* held) {
  Held*& place = idle_[next_idle_];
  if (place != nullptr) {
    place->idle_place = Held::kNotIdle;
    if (place->holders == 0) Forget(place);
  }
  place = held;
  held->idle_place = static_cast<std::uint8_t>(next_idle_);
  next_idle_ = (next_idle_ + 1) % kMostIdle;
}

/// Nobody holds anything: frees a table that many ids have left behind.
void HeldCounts::Shrink() {
  constexpr std::size_t kSmall = 8192;
  if (table_.bytes() <= kSmall) return;
  try {
    ClearAll();
  } catch (...) {
    // There is no memory for an empty table.
  }
}

void HeldCounts::Forget(Held* held) {
  table_.Erase(table_.Find(held->id));
  spare_.reset(held);
  // An insertion moves few groups, so a table that empties would stay as large.
  constexpr std::uint32_t kAtOnce = 64;
  if (++forgotten_ % kAtOnce != 0) return;
  try {
    table_.Tend(0, kAtOnce, KeepNothing);
  } catch (...) {
    // There is no memory for a smaller table.
  }
}

void HeldCounts::Clear(const Identity& id) {
  const Place place = table_.Find(id);
  if (!place) return;
  Held* const held = HeldAt(place);
  SetCleared(held);
  table_.Erase(place);
}

void HeldCounts::ClearAll() {
  table_.Clear([this](Slot& slot) { SetCleared(LoadAs<Held*>(slot.payload())); });
}

void HeldCounts::SetCleared(Held* held) {
  if (held->idle_place != Held::kNotIdle) idle_[held->idle_place] = nullptr;
  if (held->holders == 0) {
    delete held;
    return;
  }
  --held_ids_;
  held_ -= held->used;
  held->is_cleared = true;
  held->next = cleared_;
  if (cleared_ != nullptr) cleared_->previous = held;
  cleared_ = held;
}

void HeldCounts::ForgetCleared(Held* held) {
  if (held->next != nullptr) held->next->previous = held->previous;
  if (held->previous != nullptr)
    held->previous->next = held->next;
  else
    cleared_ = held->next;
  delete held;
}

HeldCounts::~HeldCounts() {
  table_.VisitAll([](Slot& slot) { delete LoadAs<Held*>(slot.payload()); });
  while (cleared_ != nullptr) ForgetCleared(cleared_);
}

}  // namespace rollgate::memory
