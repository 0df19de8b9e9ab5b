// SPDX-License-Identifier: Apache-2.0
#include "comm/membership.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/cpu.h"
#include "base/status.h"
#include "base/version.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/host_identity.h"
#include "bootstrap/local_exchange.h"

namespace axon {
namespace {

// What every rank tells all others first.
struct Card {
  std::string uid, host_id, host;
  uint64_t arena_size = 0;
  std::string address, secret;  // of the leader's listener
  std::vector<int> cpus;

  std::string Pack() const {
    return absl::StrJoin(
        {uid, host_id, host, absl::StrCat(arena_size),
         absl::BytesToHexString(address), absl::BytesToHexString(secret),
         absl::StrJoin(cpus, ",")},
        "\n");
  }
  static absl::StatusOr<Card> Unpack(const std::string& text) {
    const std::vector<std::string> f = absl::StrSplit(text, '\n');
    Card card;
    if (f.size() != 7 || !absl::SimpleAtoi(f[3], &card.arena_size)) {
      return absl::InternalError(
          absl::StrCat("a rank introduced itself with '", text, "'"));
    }
    card.uid = f[0];
    card.host_id = f[1];
    card.host = f[2];
    card.address = absl::HexStringToBytes(f[4]);
    card.secret = absl::HexStringToBytes(f[5]);
    for (absl::string_view cpu : absl::StrSplit(f[6], ',', absl::SkipEmpty())) {
      int n = 0;
      if (absl::SimpleAtoi(cpu, &n)) card.cpus.push_back(n);
    }
    return card;
  }
};

absl::Status CheckOneHost(const std::vector<Card>& cards) {
  for (size_t r = 1; r < cards.size(); ++r) {
    if (cards[r].host_id == cards[0].host_id) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "rank 0 runs on host %s (%s) and rank %d on host %s (%s): this version "
        "joins only ranks that share memory; run all on one machine, or set "
        "AXON_HOST_ID to the same text if they do share it",
        cards[0].host, cards[0].host_id, r, cards[r].host, cards[r].host_id));
  }
  return absl::OkStatus();
}

// The first rank of each process, in rank order.
std::vector<int> FirstRanks(const std::vector<Card>& cards) {
  std::vector<int> first;
  std::set<std::string> seen;
  for (size_t r = 0; r < cards.size(); ++r) {
    if (seen.insert(cards[r].uid).second) first.push_back(static_cast<int>(r));
  }
  return first;
}

// One joining; keeps what must be given back if it fails.
class Joining {
 public:
  Joining(Process& process, int rank, int ranks)
      : process_(process), rank_(rank), ranks_(ranks) {
    got_.links.assign(static_cast<size_t>(ranks), nullptr);
  }
  ~Joining() {
    for (Link* link : held_) process_.links().Release(link);
    if (given_) return;
    for (Link* link : got_.links) {
      if (link != nullptr) process_.links().Release(link);
    }
    for (std::byte* p : got_.memory) {
      // With a board, the peers may have theirs too.
      if (got_.board != nullptr) {
        GiveUpBlock(p);
      } else {
        process_.arena().Free(p);
      }
    }
  }

  absl::Status Run(Bootstrap& bootstrap, const std::string& name,
                   Deadline deadline) {
    RETURN_IF_ERROR(Introduce(bootstrap));
    RETURN_IF_ERROR(CheckOneHost(cards_));
    RETURN_IF_ERROR(ShareMemory(bootstrap, deadline));
    RETURN_IF_ERROR(bootstrap.Barrier());
    RETURN_IF_ERROR(TakeLinks());
    RETURN_IF_ERROR(Sit(bootstrap, name));
    // Nobody leaves before all have everything.
    return bootstrap.Barrier();
  }
  Membership Take() {
    given_ = true;
    return std::move(got_);
  }

 private:
  absl::Status Introduce(Bootstrap& bootstrap) {
    Card mine;
    mine.uid = process_.uid();
    mine.host_id = HostId(process_.settings().host_id);
    mine.host = HostName();
    mine.arena_size = process_.arena().size();
    mine.cpus = AllowedCpus();
    if (rank_ == 0 && ranks_ > 1) {
      RETURN_IF_ERROR(Listen(""));
      mine.address = listener_->address();
      mine.secret = listener_->secret();
    }
    ASSIGN_OR_RETURN(std::vector<std::string> all,
                     bootstrap.AllGather(mine.Pack()));
    std::set<int> cpus;
    for (const std::string& text : all) {
      ASSIGN_OR_RETURN(Card card, Card::Unpack(text));
      cpus.insert(card.cpus.begin(), card.cpus.end());
      cards_.push_back(std::move(card));
    }
    got_.usable_cpus = std::max<int>(1, static_cast<int>(cpus.size()));
    return absl::OkStatus();
  }

  absl::Status Listen(absl::string_view directory) {
    absl::StatusOr<LocalListener> listener = LocalListener::Open(directory);
    // Systems without abstract names have directories.
    if (!listener.ok() && directory.empty()) return Listen("/tmp");
    RETURN_IF_ERROR(listener.status());
    listener_.emplace(*std::move(listener));
    return absl::OkStatus();
  }

  // One rank of each process hands its arena and its life line to all others.
  absl::Status ShareMemory(Bootstrap& bootstrap, Deadline deadline) {
    const std::vector<int> first = FirstRanks(cards_);
    const auto me = std::find(first.begin(), first.end(), rank_);
    if (first.size() == 1 || me == first.end()) return absl::OkStatus();
    LocalExchangeOptions options;
    options.index = static_cast<int>(me - first.begin());
    options.count = static_cast<int>(first.size());
    options.address = cards_[0].address;
    options.secret = cards_[0].secret;
    options.deadline = deadline;
    for (const int r : first) {
      const Bootstrap::Peer& peer = bootstrap.peers()[static_cast<size_t>(r)];
      options.names.push_back(
          absl::StrFormat("rank %d (host %s, pid %d)", r, peer.host, peer.pid));
    }
    options.look = [&bootstrap] { return bootstrap.Check(); };
    const int mine[] = {process_.arena().fd().get(), process_.life()};
    absl::StatusOr<std::vector<std::vector<Fd>>> exchanged =
        ExchangeFds(options, mine, listener_ ? &*listener_ : nullptr);
    if (absl::IsUnavailable(exchanged.status())) {
      // Who left may have left because of another: the meeting knows whom.
      RETURN_IF_ERROR(bootstrap.Barrier());
    }
    ASSIGN_OR_RETURN(std::vector<std::vector<Fd>> fds, std::move(exchanged));
    for (size_t i = 0; i < first.size(); ++i) {
      const Card& card = cards_[static_cast<size_t>(first[i])];
      if (card.uid == process_.uid()) continue;
      Link* link = process_.links().Acquire(card.uid);
      if (link == nullptr) {
        if (fds[i].size() != 2) {
          return absl::InternalError(
              absl::StrFormat("rank %d handed over %d descriptors instead of 2",
                              first[i], fds[i].size()));
        }
        ASSIGN_OR_RETURN(
            Mapping arena,
            Arena::MapPeer(fds[i][0], card.arena_size, card.uid.data()));
        link = process_.links().Add(card.uid, std::move(arena),
                                    std::move(fds[i][1]));
      }
      held_.push_back(link);
    }
    return absl::OkStatus();
  }

  absl::Status TakeLinks() {
    for (size_t r = 0; r < cards_.size(); ++r) {
      if (cards_[r].uid == process_.uid()) continue;
      got_.links[r] = process_.links().Acquire(cards_[r].uid);
      if (got_.links[r] == nullptr) {
        return absl::InternalError(
            absl::StrFormat("no memory is shared with rank %d", r));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Sit(Bootstrap& bootstrap, const std::string& name) {
    ASSIGN_OR_RETURN(std::byte * block,
                     MakeBlock(process_, rank_, ranks_, name));
    got_.memory.push_back(block);
    ASSIGN_OR_RETURN(
        std::vector<std::string> all,
        bootstrap.AllGather(absl::StrCat(process_.arena().OffsetOf(block))));
    std::vector<Seat> seats(all.size());
    for (size_t r = 0; r < all.size(); ++r) {
      if (!absl::SimpleAtoi(all[r], &seats[r].block)) {
        return absl::InternalError(absl::StrCat(
            "rank ", r, " sent '", all[r], "' for the place of its block"));
      }
    }
    ASSIGN_OR_RETURN(got_.board, MakeBoard(process_, rank_, seats, got_.links));
    return absl::OkStatus();
  }

  Process& process_;
  const int rank_, ranks_;
  std::vector<Card> cards_;
  std::optional<LocalListener> listener_;
  std::vector<Link*> held_;  // until all ranks of this process have theirs
  Membership got_;
  bool given_ = false;
};

}  // namespace

absl::Status CheckRanks(int ranks) {
  if (ranks <= kMaxLocalRanks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%d ranks: at most %d may share a machine", ranks, kMaxLocalRanks));
}

absl::StatusOr<Membership> Join(Process& process, const UniqueId& id, int rank,
                                int ranks, const std::string& name,
                                int64_t timeout_ms) {
  RETURN_IF_ERROR(CheckRanks(ranks));
  process.Sweep();
  BootstrapOptions options;
  options.timeout_ms = timeout_ms;
  options.version = kVersionCode;
  options.digest = SettingsDigest(process.settings());
  options.rendezvous = &process.rendezvous();
  const Deadline deadline = Deadline::In(timeout_ms);
  ASSIGN_OR_RETURN(std::unique_ptr<Bootstrap> bootstrap,
                   Bootstrap::Join(id, rank, ranks, options));
  Joining joining(process, rank, ranks);
  const absl::Status status = joining.Run(*bootstrap, name, deadline);
  if (!status.ok()) {
    bootstrap->Fail(status);
    return status;
  }
  return joining.Take();
}

absl::StatusOr<std::byte*> MakeBlock(Process& process, int rank, int ranks,
                                     const std::string& name) {
  ASSIGN_OR_RETURN(std::byte * memory,
                   process.arena().Allocate(Block::SizeFor(ranks)));
  auto* block = new (memory) Block();
  block->size = static_cast<uint32_t>(Block::SizeFor(ranks));
  block->rank = rank;
  block->ranks = ranks;
  block->pid = getpid();
  std::strncpy(block->host, HostName().c_str(), sizeof(block->host) - 1);
  std::strncpy(block->name, name.c_str(), sizeof(block->name) - 1);
  block->progress.store(Count(1, 0), std::memory_order_relaxed);
  for (int q = 0; q < ranks; ++q) {
    for (int lane = 0; lane < kChannelLanes; ++lane) {
      new (block->peer(q, lane)) PeerLine();
    }
  }
  block->magic = Block::kMagic;
  return memory;
}

void GiveUpBlock(std::byte* memory) {
  // release: nothing more is done with the peers' memory.
  reinterpret_cast<Block*>(memory)->given_up.store(1,
                                                   std::memory_order_release);
}

absl::StatusOr<std::unique_ptr<Board>> MakeBoard(
    Process& process, int rank, absl::Span<const Seat> seats,
    const std::vector<Link*>& links) {
  std::vector<Board::Member> members;
  for (size_t r = 0; r < seats.size(); ++r) {
    Board::Member member;
    const Mapping* peer = links[r] == nullptr ? nullptr : &links[r]->arena;
    member.same_process = peer == nullptr;
    member.arena = peer == nullptr ? process.arena().base() : peer->base();
    member.arena_size = peer == nullptr ? process.arena().size() : peer->size();
    member.doorbell = &reinterpret_cast<ArenaHeader*>(member.arena)->doorbell;
    const size_t size = Block::SizeFor(static_cast<int>(seats.size()));
    if (seats[r].block % kCacheLine != 0 || size > member.arena_size ||
        seats[r].block > member.arena_size - size) {
      return absl::InternalError(
          absl::StrFormat("the block of rank %d at %u lies outside its arena",
                          r, seats[r].block));
    }
    member.block = reinterpret_cast<Block*>(member.arena + seats[r].block);
    if (member.block->magic != Block::kMagic || member.block->size != size ||
        member.block->rank != static_cast<int>(r)) {
      return absl::InternalError(absl::StrFormat(
          "what lies at %u in the arena of rank %d is not its block",
          seats[r].block, r));
    }
    members.push_back(member);
  }
  return std::make_unique<Board>(rank, std::move(members));
}

}  // namespace axon
