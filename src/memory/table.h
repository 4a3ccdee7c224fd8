// All ids of one store: grows, shrinks and forgets a little at a time, never all at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/identity.h"
#include "core/time.h"
#include "memory/chunk.h"
#include "memory/sub_table.h"

namespace rollgate::memory {

struct TableOptions {
  std::size_t payload_bytes;  ///< of each slot
  std::size_t max_keys;       ///< >= 1
  Micros retention;           ///< how long after its moment (see slot.h) an id has expired
  bool forgets_expired;       ///< false: only to make room where there are max_keys
  Secret secret;
};

/// An open-addressing table owned by one thread.
///
/// When it gets too full or too empty, a second sub-table of another size is begun, and each step
/// of Tend moves a few groups over, in the order of the hashes. So an id is in the new sub-table
/// when its old chunk lies before the one being moved, in the old one when behind it, and may be in
/// either within that chunk; memory is given back chunk by chunk on the way.
class Table {
 public:
  explicit Table(const TableOptions& options);

  /// Does a little of what is due: forgets ids that have expired and moves groups to a new
  /// sub-table, at most `most` of each. What the table forgets on its own, it hands to
  /// `release(Slot&)` first.
  template <class Release>
  void Tend(Micros now, std::size_t most, Release release);

  /// Takes a slot for an id that is not in the table; tends the table and makes room if need be.
  template <class Release>
  Place Insert(const Identity& identity, Micros moment, Micros now, Release release);

  /// Where an id is, if it is in the table.
  Place Find(const Identity& identity) {
    // Whoever has one limit for all, or is attacked by one client, asks for the same id again.
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

  void Touch(const Place& place, Micros moment) {
    const bool earlier = moment < place.slot->moment();
    place.slot->set_moment(moment);
    if (earlier) [[unlikely]] {
      SubTableOf(place).LowerBound(place, HashAt(place), moment);
    } else if (is_nearly_full_) [[unlikely]] {
      place.chunk->KeepTight(layout_, place);
    }
  }

  void Erase(const Place& place) {
    ForgetPlaces();
    SubTableOf(place).Erase(place, HashAt(place));
  }

  /// Calls visit(Slot&) for every id.
  template <class Visit>
  void VisitAll(Visit visit);

  /// Forgets all ids and gives back the memory.
  void Clear();

  /// Ids in the table, those included that have expired and not yet been forgotten.
  std::size_t live() const { return active_.live() + (draining_ ? draining_->live() : 0); }
  std::size_t bytes() const { return active_.bytes() + (draining_ ? draining_->bytes() : 0); }

  /// Ids dropped before they expired, because there were max_keys others.
  std::uint64_t evicted() const { return evicted_; }

  /// The most bounds of groups and chunks that one eviction has had to make exact, which is most of
  /// what it costs.
  std::size_t most_looks() const { return most_looks_; }

  /// No id that was forgotten as expired mattered at this time or later. An id that is not in the
  /// table must not be judged by an earlier time: it may have been forgotten.
  Micros forgotten_until() const { return forgotten_until_; }

 private:
  /// So few ids are not worth forgetting: those who act now and then would be made anew each time.
  static constexpr std::size_t kFewIds = 128;
  /// Two groups hold more ids than one insertion brings: moving always ends before the next growth.
  static constexpr std::size_t kStepsPerInsert = 2;
  /// Bounds of groups and chunks that may be made exact for each id to forget. Three will do where
  /// nothing has lagged: those of the id before and its own chunk's.
  static constexpr std::size_t kLooksPerForgotten = 4;
  /// In a table that has become nearly full, groups whose bounds are made exact per insertion: all
  /// are before it is full.
  static constexpr std::size_t kSweptPerStep = 8;

  std::uint64_t HashAt(const Place& place) const { return HashOf(place.slot->identity(), secret_); }
  SubTable& SubTableOf(const Place& place) { return place.in_draining ? *draining_ : active_; }

  Place FindInEither(const Identity& identity, std::uint64_t hash);

  bool ForgetsExpired() const { return forgets_expired_ && live() > kFewIds; }

  /// No id's moment is earlier than this.
  Micros EarliestBound() const {
    return draining_ ? std::min(active_.EarliestBound(), draining_->EarliestBound())
                     : active_.EarliestBound();
  }

  /// The id nearest to expiry in the whole table, or none if more than `looks` bounds would have to
  /// be made exact to tell; counts those down. Precondition: live() > 0.
  Place Nearest(std::size_t& looks);

  /// Frees the slot of an id that the table forgets on its own, expired or not.
  template <class Release>
  void Forget(const Place& place, Micros last_expired, Release& release);

  /// Keeps the search for the id nearest to expiry short where one may soon have to go: in a table
  /// that is nearly full, no bound of a group lags, and those of chunks are made exact in turn.
  void PrepareForEvictions();
  /// Makes bounds of groups exact that may lag from before; tells whether there were any.
  bool Sweep();

  /// Begins a sub-table of another size if this one is too full or too empty.
  void Resize();
  void Begin(std::size_t chunk_count);
  void Move(std::size_t groups);
  void AdvanceCursor();
  /// Makes sure that the ids of a chunk of `from` have somewhere to go in `to`.
  void PrepareFor(const SubTable& from, std::size_t chunk, SubTable& to) const;

  /// Before any id moves, or Places change their meaning.
  void ForgetPlaces() { repeated_ = {}; }

  SlotLayout layout_;
  std::size_t max_keys_;
  Micros retention_;
  bool forgets_expired_;
  Secret secret_;
  SubTable active_;
  std::optional<SubTable> draining_;
  std::size_t cursor_chunk_ = 0;  // of draining_: the chunk being moved
  std::uint32_t cursor_group_ = 0;
  bool is_nearly_full_ = false;
  std::size_t swept_chunks_ = 0;  // of active_, and then of draining_
  std::uint32_t swept_groups_ = 0;
  std::size_t next_tightened_ = 0;  // of active_: a chunk
  std::uint64_t last_hash_ = 0;     // that Find looked for
  Place repeated_;  // of the id it last looked for twice running; none once any id has moved
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
  release(*place.slot);
  Erase(place);
  // Whoever wants the next one to forget has to look through this group.
  place.chunk->PrefetchGroup(layout_, place.group);
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
Place Table::Insert(const Identity& identity, Micros moment, Micros now, Release release) {
  Tend(now, kStepsPerInsert, release);
  if (live() >= max_keys_) {
    constexpr std::size_t kAllItTakes = std::numeric_limits<std::size_t>::max();
    std::size_t looks = kAllItTakes;
    Forget(Nearest(looks), now - retention_, release);
    most_looks_ = std::max(most_looks_, kAllItTakes - looks);
  }

  ForgetPlaces();  // the slot may be found in a chunk that grows
  const std::uint64_t hash = HashOf(identity, secret_);
  const bool in_draining = draining_ && draining_->AddressOf(hash).chunk > cursor_chunk_;
  SubTable& part = in_draining ? *draining_ : active_;
  Place place = part.Insert(layout_, secret_, hash, moment);
  place.in_draining = in_draining;
  place.slot->set_identity(identity);
  return place;
}

template <class Visit>
void Table::VisitAll(Visit visit) {
  for (SubTable* part : {&active_, draining_ ? &*draining_ : nullptr}) {
    if (part == nullptr) continue;
    for (std::size_t chunk = 0; chunk < part->chunk_count(); ++chunk) {
      for (std::uint32_t group = 0; group < part->chunk(chunk).group_count(); ++group) {
        part->chunk(chunk).VisitGroup(layout_, group,
                                      [&](const Place& place) { visit(*place.slot); });
      }
    }
  }
}

}  // namespace rollgate::memory
