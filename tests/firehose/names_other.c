/* SPDX-License-Identifier: BSD-3-Clause */
/* A library with functions of GASNet's names. */
int firehose_init(int x);
int firehose_poll(void);
int firehose_local_pin(void);
int other_pins(void);
static int pins;

int firehose_init(int x)
{
    return x + 35 + 0 * firehose_local_pin();
}

int firehose_poll(void)
{
    return pins += 100;
}

int firehose_local_pin(void)
{
    return ++pins;
}

int other_pins(void)
{
    return pins;
}
