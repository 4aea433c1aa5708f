// MailSender sends mails through a mail server, by SMTP with libcurl.
//
// Threads: callable from anywhere; each call blocks its thread for at most kMailLimit. Errors: in
// the result.
#pragma once

#include <string>
#include <utility>

#include "base/random.hpp"
#include "base/time.hpp"
#include "notify/envelope.hpp"
#include "notify/http_sender.hpp"

namespace trainyard::notify {

inline constexpr Duration kMailLimit = 30s;

struct MailSettings {
  std::string url;   // "smtp://mail.lan:25", "smtps://mail.lan:465"
  std::string from;  // an address
  std::string user = {}, password = {};
  std::string ca_bundle = {};  // PEM file; "": the system's
  bool require_tls = true;     // for smtp://: requires STARTTLS
};

class MailSender {
 public:
  MailSender(MailSettings settings, Clock& clock, Random& random)
      : settings_(std::move(settings)), clock_(clock), random_(random) {}
  Sent send(const Outgoing& outgoing) const;

 private:
  const MailSettings settings_;
  Clock& clock_;
  Random& random_;
};

// Builds a mail in UTF-8. No content of the subject or of addresses can add a header.
// `message_id`: "<..@..>".
std::string mail_of(const Outgoing& outgoing, const std::string& from, Instant date,
                    const std::string& message_id);

}  // namespace trainyard::notify
