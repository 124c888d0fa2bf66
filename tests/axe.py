# tests/axe.py CHROMIUM AXE.min.js ADDRESS... - what axe-core finds in pages, on a phone and a desk, light and dark
#
# ADDRESS: a file's, or one of `foretoken serve`, which is waited for. Findings of impact serious or critical fail.
import json, sys, time

sys.dont_write_bytecode = True
from browser import Browser

FOUND = """axe.run(document).then((r) => JSON.stringify(r.violations.map((v) => [v.id, v.impact, v.nodes.length,
    v.nodes[0].html.slice(0, 160)])))"""
browser = Browser(sys.argv[1], "")
axe = open(sys.argv[2]).read()
bad = 0
for address in sys.argv[3:]:
    for width in 390, 1280:
        for theme in "light", "dark":
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
            browser.call("Page.navigate", url=address)
            browser.until("document.readyState == 'complete' && (location.protocol == 'file:' || document.body.dataset.ready)")
            time.sleep(1)  # an answer follows the form
            browser.run(axe + ";0")
            found = json.loads(browser.run(FOUND))
            bad += sum(1 for v in found if v[1] in ("serious", "critical"))
            print("%-40.40s %4d px %-5s %d findings" % (address, width, theme, len(found)))
            for v in found:
                print("    %s, %s, %d times: %s" % tuple(v))
browser.end()
sys.exit(bad > 0)
