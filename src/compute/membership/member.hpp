// A Member is one process of an elastic training. It applies for a rank, is assigned one in a
// generation, joins the other ranks of that generation, and applies again when an operation has
// failed or hosts have changed.
//
//   auto member = TRY(Member::connect({.service = {"10.0.0.1", 7000}, .secret = secret,
//                                      .name = "b/0 #1", .host = "b"}));
//   for (;;) {
//     const Assignment assignment = TRY(member->next());  // waits, also while ranks are too few
//     auto group = member->join({});                      // fails if a rank has died: apply again
//     ...                                                 // train, commit, and check changed()
//   }
//   member->done();
//
// Threads: confined to one at a time, except changed() and lost(), which may be called from any
// thread.
// Errors:  unavailable, if the service cannot be reached or has ended; denied, with the reason, if
// the member is dismissed; cancelled, as described below.
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
  Duration connect_timeout = 1min;  // connect() retries for this time
};

struct Assignment {
  int rank = 0;
  Generation generation;
};

class Member {
 public:
  static Result<std::unique_ptr<Member>> connect(MemberOptions options);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // Waits for the next generation with this member. `complaint` is the reason why this member left
  // the previous generation, for the other members; empty if nothing failed. Requires: the group of
  // the previous generation was destroyed. Errors: cancelled, if no generation is formed within
  // `at_most`.
  Result<Assignment> next(const std::string& complaint = {}, Duration at_most = 24h * 365);
  // Joins the group of the last assignment, once. Ignores endpoints, rank, shared_value and
  // listener of `options`. Errors: cancelled, if a member of the generation is lost while it joins;
  // invalid, without a new assignment.
  Result<std::unique_ptr<collectives::Group>> join(collectives::TcpOptions options);
  // Returns the changes since the last assignment: whether new members wait, or members must leave.
  actions::Changed changed() const;
  // Describes the members of this generation that were lost, or why this member was dismissed or
  // has lost the service; empty if neither is the case.
  std::string lost() const;
  // Reports to the service that this member ends successfully.
  void done();

 private:
  class Impl;
  explicit Member(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainyard::membership
