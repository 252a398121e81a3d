/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of pcap.c where the build has found no libpcap. */
#include "raw/source/source.h"

#include <stdio.h>

int raw_pcap_open(struct raw_source **source, const char *in, const char *out,
                  const struct raw_wanted *wanted, char error[RAW_ERROR])
{
    snprintf(error, RAW_ERROR,
             "--pcap %.80s: this pinwheel was built without libpcap (Debian: libpcap-dev)", in);
    return -1;
}
