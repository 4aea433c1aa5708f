// One process of an elastic training, as it holds it: it applies for a rank, gets one in a generation, joins the
// others of it, and applies again when an operation failed or hosts changed.
//
//   auto member = TRY(Member::connect({.service = {"10.0.0.1", 7000}, .secret = secret, .name = "b/0 #1", .host = "b"}));
//   for (;;) {
//     const Place place = TRY(member->next());         // waits, also for as long as there are too few
//     auto group = member->join({});                   // failed: someone died meanwhile; apply again
//     ...                                              // train; commit now and then; at a commit look at changed()
//   }
//   member->done();
//
// Threads: one at a time, but changed() and lost() from anywhere.
// Errors:  unavailable when the service cannot be reached or is gone; denied when we are dismissed, with why.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "membership/membership.hpp"

namespace trainyard::membership {

struct MemberOptions {
  collectives::Endpoint service;
  std::string secret;
  std::string name;
  std::string host;
  int wanted_rank = -1;
  Duration connect_deadline = 1min;  // the service was there before us
};

struct Place {
  int rank = 0;
  Generation generation;
};

class Member {
 public:
  static Result<std::unique_ptr<Member>> connect(MemberOptions options);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // The next generation that we are in. `complaint`: why we left the one before, told to the others; empty when
  // nothing failed. Leave the group first.
  Result<Place> next(const std::string& complaint = {}, Duration at_most = 24h * 365);
  // The group of the generation that we were last given. Of `options`: all but endpoints, rank, secret and listener.
  // Errors: cancelled when someone of it was lost meanwhile.
  Result<std::unique_ptr<collectives::Group>> join(collectives::TcpOptions options);
  // What the service has said since the last generation: someone waits to be let in, or someone is to leave.
  actions::Changed changed() const;
  // Who of this generation was lost, in words; empty when nobody was.
  std::string lost() const;
  // We end, and nothing is wrong.
  void done();

 private:
  class Impl;
  explicit Member(std::unique_ptr<Impl> inside);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainyard::membership
