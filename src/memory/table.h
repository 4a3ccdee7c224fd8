// All ids of one store: grows, shrinks and forgets in small steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/identity.h"
#include "core/time.h"
#include "memory/chunk.h"
#include "memory/sub_table.h"

namespace rollgate::memory {

struct TableOptions {
  std::size_t payload_bytes;  ///< of each slot
  std::size_t max_keys;       ///< >= 1
  Micros retention;           ///< how long after its moment (see slot.h) an id expires
  bool forgets_expired;       ///< false: forgets ids only to make room
  Secret secret;
  /// Up to so many ids, none are forgotten: ids that act now and then would be inserted each time.
  std::size_t few_ids = 128;
};

/// An open-addressing table. Owned by one thread.
///
/// When it gets too full or too empty, a second sub-table of another size is created. Each Tend
/// moves a few groups to it, in the order of the hashes. An id is in the new sub-table if its old
/// chunk is before the one being moved, in the old one if after it, and in either if in that chunk.
class Table {
 public:
  explicit Table(const TableOptions& options);

  /// Forgets up to `most` expired ids, each after `release(Slot&)`, and moves up to `most` groups.
  template <class Release>
  void Tend(Micros now, std::size_t most, Release release);

  /// Takes a slot for an id that is not in the table; tends it, evicts an id if it is full.
  template <class Release>
  Place Insert(const Identity& identity, Micros moment, Micros now, Release release);

  Place Find(const Identity& identity) {
    // A limiter with one id, or attacked by one client, looks for the same id again and again.
    if (repeated_ && identity == repeated_identity_) return repeated_;
    const std::uint64_t hash = HashOf(identity, secret_);
    const Place place =
        draining_ ? FindInEither(identity, hash) : active_.Find(layout_, identity, hash);
    if (hash == last_hash_) {
      repeated_ = place;
      repeated_identity_ = identity;
    }
    last_hash_ = hash;
    return place;
  }

  /// The moment of the id nearest to expiry. Precondition: there is an id.
  Micros NearestMoment() {
    std::size_t looks = kAllItTakes;
    return Nearest(looks).slot->moment();
  }

  /// Forgets the id nearest to expiry, expired or not, after `release(Slot&)`.
  template <class Release>
  void ForgetNearest(Micros now, Release release);

  /// Changes the moment of an id.
  void Touch(const Place& place, Micros moment) {
    assert(place);
    const bool earlier = moment < place.slot->moment();
    place.slot->set_moment(moment);
    if (earlier) [[unlikely]] {
      SubTableOf(place).LowerBound(place, HashAt(place), moment);
    } else if (is_nearly_full_) [[unlikely]] {
      place.chunk->KeepTight(layout_, place);
    }
  }

  void Erase(const Place& place) {
    assert(place && live() > 0);
    ForgetPlaces();
    SubTableOf(place).Erase(place, HashAt(place));
  }

  template <class Visit>
  void VisitAll(Visit visit) {
    VisitPlaces([&](const Place& place) { visit(*place.slot); });
  }

  /// `visit` must not insert or erase.
  template <class Visit>
  void VisitPlaces(Visit visit);

  /// Forgets all ids and frees their memory; calls `destroy` with each slot before. If there is no
  /// memory for an empty table, nothing happens.
  template <class Destroy>
  void Clear(Destroy destroy) {
    SubTable empty = Empty();
    VisitAll(destroy);
    Restart(std::move(empty));
  }

  /// Ids in the table, including expired ones not yet forgotten.
  std::size_t live() const { return active_.live() + (draining_ ? draining_->live() : 0); }
  std::size_t bytes() const { return active_.bytes() + (draining_ ? draining_->bytes() : 0); }

  /// Ids dropped before they expired.
  std::uint64_t evicted() const { return evicted_; }

  /// The most bounds that one eviction has had to make exact.
  std::size_t most_looks() const { return most_looks_; }

  /// All ids forgotten as expired had expired at this time. An id that is not in the table may have
  /// been forgotten, so it must not be judged by an earlier time.
  Micros forgotten_until() const { return forgotten_until_; }
  void SetForgottenUntil(Micros moment) { forgotten_until_ = moment; }

 private:
  /// Two groups hold more ids than one insertion adds, so a move ends before the next growth.
  static constexpr std::size_t kStepsPerInsert = 2;
  /// Bounds to make exact per id to forget; three are enough if none lags.
  static constexpr std::size_t kLooksPerForgotten = 4;
  static constexpr std::size_t kAllItTakes = std::numeric_limits<std::size_t>::max();
  /// Groups whose bounds are made exact per insertion in a nearly full table.
  static constexpr std::size_t kSweptPerStep = 8;

  std::uint64_t HashAt(const Place& place) const { return HashOf(place.slot->identity(), secret_); }
  SubTable& SubTableOf(const Place& place) { return place.in_draining ? *draining_ : active_; }

  Place FindInEither(const Identity& identity, std::uint64_t hash);

  bool ForgetsExpired() const { return forgets_expired_ && live() > few_ids_; }

  /// The sub-table with the lowest bound.
  SubTable& EarliestPart() {
    const bool in_draining = draining_ && draining_->EarliestBound() < active_.EarliestBound();
    return in_draining ? *draining_ : active_;
  }
  Micros EarliestBound() { return EarliestPart().EarliestBound(); }

  /// The id nearest to expiry, if at most `looks` bounds must be made exact; decrements `looks`.
  Place Nearest(std::size_t& looks);

  /// Frees the slot of an id, expired or not.
  template <class Release>
  void Forget(const Place& place, Micros last_expired, Release& release);

  /// Keeps the search for the id nearest to expiry short in a nearly full table: the bounds of
  /// groups stay exact, and those of chunks are made exact in turn.
  void PrepareForEvictions();
  /// Makes the next bounds of groups exact that may lag. Returns whether there were any.
  bool Sweep();

  /// Begins a sub-table of another size if this one is too full or too empty.
  void Resize();
  void Begin(std::size_t chunk_count);
  void Move(std::size_t groups);
  void AdvanceCursor();
  /// Creates the chunks of `to` that the ids of a chunk of `from` can move to.
  void PrepareFor(const SubTable& from, std::size_t chunk, SubTable& to) const;

  SubTable Empty() const;
  void Restart(SubTable empty);

  /// Must be called before any id moves.
  void ForgetPlaces() { repeated_ = {}; }

  SlotLayout layout_;
  std::size_t max_keys_;
  Micros retention_;
  bool forgets_expired_;
  std::size_t few_ids_;
  Secret secret_;
  SubTable active_;
  std::optional<SubTable> draining_;
  std::size_t cursor_chunk_ = 0;  // of draining_: the chunk being moved
  std::uint32_t cursor_group_ = 0;
  bool is_nearly_full_ = false;
  std::size_t swept_chunks_ = 0;  // of active_, and then of draining_
  std::uint32_t swept_groups_ = 0;
  std::size_t next_tightened_ = 0;  // of active_: a chunk
  std::uint64_t last_hash_ = 0;     // in Find
  Place repeated_;                  // of the id that Find last looked for twice in a row
  Identity repeated_identity_;
  std::uint64_t evicted_ = 0;
  std::size_t most_looks_ = 0;
  Micros forgotten_until_ = kLongAgo;
};

template <class Release>
void Table::Forget(const Place& place, Micros last_expired, Release& release) {
  if (place.slot->moment() <= last_expired) {
    forgotten_until_ = std::max(forgotten_until_, place.slot->moment() + retention_);
  } else {
    ++evicted_;
  }
  assert(place.slot->moment() >= EarliestBound());
  release(*place.slot);
  Erase(place);
  // The group is in the cache now. What the next search reads will be when it comes.
  std::size_t looks = 1;
  SubTableOf(place).Tighten(layout_, looks);
  EarliestPart().PrefetchEarliest(layout_);
}

template <class Release>
void Table::Tend(Micros now, std::size_t most, Release release) {
  const Micros last_expired = now - retention_;
  std::size_t looks = most * kLooksPerForgotten;
  for (std::size_t i = 0; i < most && ForgetsExpired() && EarliestBound() <= last_expired; ++i) {
    const Place nearest = Nearest(looks);
    if (!nearest || nearest.slot->moment() > last_expired) break;
    Forget(nearest, last_expired, release);
  }
  PrepareForEvictions();
  Move(most);
  Resize();
}

template <class Release>
void Table::ForgetNearest(Micros now, Release release) {
  std::size_t looks = kAllItTakes;
  Forget(Nearest(looks), now - retention_, release);
  most_looks_ = std::max(most_looks_, kAllItTakes - looks);
}

template <class Release>
Place Table::Insert(const Identity& identity, Micros moment, Micros now, Release release) {
  Tend(now, kStepsPerInsert, release);
  if (live() >= max_keys_) ForgetNearest(now, release);

  ForgetPlaces();  // the slot may be found in a chunk that grows
  const std::uint64_t hash = HashOf(identity, secret_);
  const bool in_draining = draining_ && draining_->AddressOf(hash).chunk > cursor_chunk_;
  SubTable& part = in_draining ? *draining_ : active_;
  Place place = part.Insert(layout_, secret_, hash, moment);
  place.in_draining = in_draining;
  place.slot->set_identity(identity);
  assert(live() <= max_keys_ && place.slot->moment() == moment);
  return place;
}

template <class Visit>
void Table::VisitPlaces(Visit visit) {
  for (SubTable* part : {&active_, draining_ ? &*draining_ : nullptr}) {
    if (part == nullptr) continue;
    for (std::size_t chunk = 0; chunk < part->chunk_count(); ++chunk) {
      for (std::uint32_t group = 0; group < part->chunk(chunk).group_count(); ++group) {
        part->chunk(chunk).VisitGroup(layout_, group, visit);
      }
    }
  }
}

}  // namespace rollgate::memory
