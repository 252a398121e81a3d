/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the components that carry this process's messages; see mpi_portals.h. */
#include "mpi_portals.h"

#include "harness/turn.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* The file that the address lies in which the first word at a symbol of libmpi is. */
static const char *home_of(const char *symbol)
{
    Dl_info info;
    void *const *at = dlsym(RTLD_DEFAULT, symbol);
    return at != NULL && *at != NULL && dladdr(*at, &info) != 0 ? info.dli_fname : "nothing";
}

static int named(struct dl_phdr_info *info, size_t size, void *name)
{
    return strstr(info->dlpi_name, name) != NULL;
}

int portals_carries(void)
{
    static char osc[] = "/mca_osc_portals4.so";
    const char *pml = home_of("mca_pml"); /* a table of functions */
    const char *mtl = home_of("ompi_mtl_base_selected_component");
    if (strstr(pml, "/mca_pml_cm.so") == NULL || strstr(mtl, "/mca_mtl_portals4.so") == NULL) {
        return turn_fail("messages go by %s and %s, not by the mtl portals4", pml, mtl);
    }
    if (dl_iterate_phdr(named, osc) == 0) {
        return turn_fail("the component osc portals4 was not loaded");
    }
    return 0;
}
