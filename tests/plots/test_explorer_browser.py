"""The explorer in a real browser: every thing that a reader does with it, without a network."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from explorer_pages import sample_report

CHROMIUM = os.environ.get("MERCER_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install 'mercer[test]'", exc_type=ImportError
)
if CHROMIUM is None:
    pytest.skip("no Chromium is found: apt-get install chromium, or set MERCER_CHROMIUM", allow_module_level=True)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    return sample_report().save(tmp_path_factory.mktemp("explorer") / "page.html")


@pytest.fixture(scope="module")
def driver():
    with playwright.sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(driver):
    browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture
def opened(browser, page_file):
    """Opens the page, and in the end asks that nothing was said on the console and nothing requested."""
    contexts, files, complaints, requests = [], set(), [], set()

    def open_page(*, file=page_file, width=1200, height=850, scheme="light", ready=True):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.add(request.url))
        files.add(Path(file).as_uri())
        page.goto(Path(file).as_uri())
        if ready:
            page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url for url in requests if not url.startswith("blob:")} == files  # a download is a blob of the page's own


def place(page, row):
    """Where a row is drawn, in pixels of the window."""
    box = page.locator("#points").bounding_box()
    x, y = page.evaluate(f"explorer.position({row})")
    return box["x"] + x, box["y"] + y


def alone(page):
    """A row without others around it."""
    return page.evaluate(
        """() => {const s = explorer.picture.screen(explorer.picture.panels[0]); const n = description.n;
        let best = 0, most = -1; for (let i = 0; i < n; i++) { let near = Infinity;
        for (let j = 0; j < n; j++) if (j !== i) near = Math.min(near, Math.hypot(s[3*i]-s[3*j], s[3*i+1]-s[3*j+1]));
        if (near > most) { most = near; best = i; } } return best; }"""
    )


def selected(page):
    return page.evaluate("explorer.selection.list()")


def pixels(page):
    """The colours of the picture, an array of height × width × 3."""
    from io import BytesIO

    from matplotlib.image import imread

    return imread(BytesIO(page.locator("#stage").screenshot()))[..., :3]


def settled(page):
    page.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")


def test_the_picture_is_drawn_in_two_and_three_dimensions(opened):
    page = opened()
    flat = pixels(page)
    assert (flat.std(axis=2) > 0.1).sum() > 500  # coloured pixels: the points
    page.check("[name=dims][value='3']")
    settled(page)
    deep = pixels(page)
    assert (deep.std(axis=2) > 0.1).sum() > 500
    assert np.abs(deep - flat).max() > 0.3
    box = page.locator("#stage").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 320, box["y"] + 240, steps=4)
    page.mouse.up()
    settled(page)
    assert np.abs(pixels(page) - deep).max() > 0.3  # turned


def test_hover_shows_the_row_and_texts_stay_texts(opened):
    page = opened()
    row = page.evaluate("description.columns[0].values.findIndex(v => description.columns[0].words[v].startsWith('<'))")
    page.mouse.move(*place(page, row))
    page.wait_for_selector("#tooltip:not([hidden])")
    text = page.locator("#tooltip").inner_text()
    assert f"row\t{row}" in text
    assert "<img src=x" in text
    assert "person" in page.locator("#row").inner_text()
    assert page.evaluate("window.hurt") is None
    assert page.locator("img").count() == 0
    assert "</script>" in page.locator("h1").inner_text()


def test_click_selects_a_row_and_the_live_region_says_so(opened):
    page = opened()
    row = alone(page)
    page.mouse.click(*place(page, row))
    assert selected(page) == [row]
    assert page.locator("#status").inner_text() == f"Row {row}: 1 of 310 rows selected."
    assert page.locator("#status").get_attribute("aria-live") == "polite"
    page.click("#clear")
    assert selected(page) == []


def test_box_and_lasso_select_what_lies_inside_shift_adds_and_alt_removes(opened):
    page = opened()
    stage = page.locator("#points").bounding_box()
    positions = np.array(page.evaluate("Array.from({length: 310}, (_, i) => explorer.position(i))"))
    positions += [stage["x"], stage["y"]]
    middle = np.median(positions[:, 0])
    page.check("[name=mode][value=box]")
    page.mouse.move(stage["x"] + 2, stage["y"] + 2)
    page.mouse.down()
    page.mouse.move(middle, stage["y"] + stage["height"] - 4, steps=3)
    page.mouse.up()
    assert selected(page) == np.flatnonzero(positions[:, 0] <= middle).tolist()
    page.check("[name=mode][value=lasso]")
    at = positions[alone(page)]
    drag_round(page, at, 6.0)
    near = np.flatnonzero(np.linalg.norm(positions - at, axis=1) < 5.5).tolist()
    assert selected(page) == near
    left, top = stage["x"] + 2, stage["y"] + 2
    corners = [(left + 800, top), (left + 800, top + 540), (left, top + 540)]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in (*corners[1:], corners[0]):
        page.mouse.move(*corner, steps=3)
    page.mouse.up()
    across, down = (positions - [left, top]).T
    below = down / 540 + across / 800 - 1  # of the long side of the triangle
    clear = np.abs(below) > 0.01
    inside = (below > 0) & (down < 540) & (across < 800)
    assert 20 < inside.sum() < 290
    np.testing.assert_array_equal(np.isin(np.flatnonzero(clear), selected(page)), inside[clear])
    drag_round(page, at, 6.0)
    page.keyboard.down("Shift")
    far = positions[np.argmax(np.linalg.norm(positions - at, axis=1))]
    drag_round(page, far, 6.0)
    page.keyboard.up("Shift")
    both = set(selected(page))
    assert set(near) < both
    page.keyboard.down("Alt")
    drag_round(page, far, 6.0)
    page.keyboard.up("Alt")
    assert set(near) <= set(selected(page)) < both


def drag_round(page, at, radius):
    for i, angle in enumerate(np.linspace(0, 2 * np.pi, 25)):
        page.mouse.move(at[0] + radius * np.cos(angle), at[1] + radius * np.sin(angle))
        if i == 0:
            page.mouse.down()
    page.mouse.up()


def test_selected_rows_are_exported_and_stand_in_a_table(opened):
    page = opened()
    assert page.locator("#export").is_disabled()
    page.fill("#search", "person 3")
    page.press("#search", "Enter")
    expected = [i for i in range(310) if "person 3" in f"person {i}"]
    assert selected(page) == expected
    with page.expect_download() as download:
        page.click("#export")
    lines = Path(download.value.path()).read_text().split()
    assert lines == ["row", *map(str, expected)]
    page.evaluate("description.place = 'name'")  # what says where a row stands in its file
    with page.expect_download() as download:
        page.click("#export")
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines == ["row,name", *(f"{i},person {i}" for i in expected)]
    page.click("#selected-title")
    assert page.locator("#selected-table tbody tr").count() == len(expected)
    assert "novelty" in page.locator("#selected-table thead").inner_text()


def test_search_finds_rows_values_and_classes(opened):
    page = opened()
    for query, count in [("#7", 1), ("class = left", 100), ("landmark weight > 0", 80), ("nobody", 0)]:
        page.fill("#search", query)
        page.click("text=Find")
        assert len(selected(page)) == count, query
        assert ("No row matches" in page.locator("#status").inner_text()) == (count == 0), query


def test_rows_are_coloured_by_class_density_novelty_weight_or_not_at_all(opened):
    page = opened()
    for name in ("class", "novelty", "stationary density", "landmark weight", "nothing"):
        page.select_option("#colour", label=name)
        colours = np.array(page.evaluate("Array.from(explorer.picture.colours.array)")).reshape(-1, 4)[:, :3]
        kinds = len(np.unique(colours, axis=0))
        assert kinds == {"class": 4, "nothing": 1}.get(name, kinds)
        if name == "landmark weight":
            assert np.sum(np.all(colours == 128, axis=1)) == 230  # rows that are no landmarks
        if name in ("novelty", "stationary density"):
            assert kinds > 50
        assert page.locator("#legend-title").inner_text() == ("Legend" if name == "nothing" else name)
    page.select_option("#colour", label="novelty")
    linear = page.evaluate("Array.from(explorer.picture.colours.array)")
    page.select_option("#scale", "rank")
    assert page.evaluate("Array.from(explorer.picture.colours.array)") != linear


def test_marks_differ_in_shape_and_a_class_of_the_legend_selects_its_rows(opened):
    page = opened()
    assert page.evaluate("explorer.picture.panels[0].scene.children.length") == 4
    page.click("#legend li:nth-child(2) button")
    assert page.locator("#legend li:nth-child(2) button").get_attribute("aria-pressed") == "true"
    assert len(selected(page)) == 100
    page.uncheck("#shapes")
    assert page.evaluate("explorer.picture.panels[0].scene.children.length") == 1


def test_the_methods_stand_side_by_side_and_share_the_row_pointed_at(opened):
    page = opened()
    page.check("#beside")
    settled(page)
    assert page.locator("#captions span").all_inner_texts() == ["SDPEmbedding", "Diffusion maps", "PCA"]
    places = page.evaluate("explorer.picture.panels.map(p => explorer.position(5, p))")
    widths = page.evaluate("explorer.picture.panels.map(p => [p.x, p.x + p.w])")
    for (x, _), (low, high) in zip(places, widths, strict=True):
        assert low <= x <= high


def test_a_view_without_a_third_coordinate_is_flat_in_three_dimensions(opened):
    page = opened()
    page.select_option("#view", label="PCA")  # of points with two columns
    page.check("[name=dims][value='3']")
    assert page.locator("#axis-2 option:checked").inner_text() == "nothing"
    positions = np.array(page.evaluate("Array.from(explorer.picture.panels[0].positions)")).reshape(-1, 3)
    assert np.ptp(positions, axis=0)[:2].min() > 0.5
    assert not positions[:, 2].any()
    page.select_option("#axis-0", label="coordinate 2")
    swapped = np.array(page.evaluate("Array.from(explorer.picture.panels[0].positions)")).reshape(-1, 3)
    np.testing.assert_array_equal(swapped[:, 0], swapped[:, 1])


def test_while_it_moves_a_slow_machine_draws_a_part_and_at_rest_all_rows(opened):
    page = opened()
    drawn = "explorer.picture.panels[0].scene.children.map(p => [p.geometry.drawRange.count, p.geometry.index.count])"
    slow = "explorer.picture.part = 0.1; explorer.picture.moving = true; explorer.picture.delay = 30"
    # At once: a frame that was asked for before would be drawn in between, and be a quick one.
    part = np.array(page.evaluate(f"() => {{ {slow}; explorer.picture.render(); return {drawn} }}"))
    assert np.all(part[:, 0] == np.ceil(0.1 * part[:, 1]))
    page.evaluate("explorer.picture.moved()")
    for _ in range(100):
        settled(page)
        everything = np.array(page.evaluate(drawn))
        if np.all(everything[:, 0] == everything[:, 1]):
            break
        page.wait_for_timeout(50)
    assert np.all(everything[:, 0] == everything[:, 1])
    assert everything[:, 1].sum() == 310


def test_keys_do_what_the_pointer_does(opened):
    page = opened()
    page.focus("#stage")
    page.keyboard.press("]")
    assert page.locator("#status").inner_text().startswith("Row 0, class")
    page.keyboard.press("]")
    page.keyboard.press("Enter")
    assert selected(page) == [1]
    before = page.evaluate("explorer.position(1)")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("+")
    assert page.evaluate("explorer.position(1)") != before
    page.keyboard.press("0")
    assert page.evaluate("explorer.position(1)") == before
    page.keyboard.press("Escape")
    assert selected(page) == []
    page.keyboard.press("b")
    assert page.is_checked("[name=mode][value=box]")


def test_every_control_has_a_name(opened):
    page = opened()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, [role=application], [role=img]")].filter(e =>
        !(e.labels?.length && [...e.labels].some(l => l.textContent.trim())) && !e.textContent.trim()
        && !e.getAttribute("aria-label")).map(e => e.outerHTML)"""
    )
    assert nameless == []
    order = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, [tabindex]")].map(e => e.tabIndex)"""
    )
    assert max(order) == 0  # the order of focus is that of the page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_scheme_of_the_system_and_its_switch(opened, scheme):
    page = opened(scheme=scheme)
    dark = pixels(page)[-5, -5].mean() < 0.5
    assert dark == (scheme == "dark")
    page.click("#theme")  # light
    if scheme == "light":
        page.click("#theme")  # dark
    settled(page)
    assert (pixels(page)[-5, -5].mean() < 0.5) == (scheme == "light")


def test_a_narrow_window_has_no_sideways_scroll_and_the_picture_follows(opened):
    page = opened()
    wide = page.evaluate("explorer.picture.width")
    page.set_viewport_size({"width": 390, "height": 800})
    settled(page)
    assert page.evaluate("explorer.picture.width") < wide
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("document.getElementById('points').width") == page.evaluate(
        "Math.floor(explorer.picture.width * devicePixelRatio)"
    )


def test_certificate_charts_and_landmarks_are_on_the_page(opened):
    page = opened()
    assert "Certified optimal to within" in page.locator("#cards").inner_text()
    assert page.locator("#verdict .proved").count() == 1
    titles = page.locator("#charts h3").all_inner_texts()
    assert titles[:3] == ["Spectrum", "Gap history", "Convergence"]
    assert page.locator("#charts svg[role=img]").count() == len(titles)
    page.locator("#landmarks button").first.click()
    assert selected(page) == [page.evaluate("description.landmarks.rows[0]")]


def test_the_frame_of_a_notebook_works(opened, tmp_path):
    host = tmp_path / "notebook.html"
    host.write_text(f"<!doctype html><meta charset=utf-8><body>{sample_report(beside=False)._repr_html_()}")
    page = opened(file=host, ready=False)
    frame = page.frame_locator("iframe")
    page.frames[1].wait_for_selector("html[data-ready]")
    frame.locator("#search").fill("#3")
    frame.locator("#search").press("Enter")
    assert frame.locator("#status").inner_text() == "Search for “#3”: 1 of 310 rows selected."


def test_without_webgl_the_rest_of_the_page_works(driver, page_file):
    browser = driver.chromium.launch(
        executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-3d-apis"]
    )
    page = browser.new_page()
    page.goto(Path(page_file).as_uri())
    page.wait_for_selector("html[data-ready]")
    assert "cannot draw with WebGL" in page.locator("#failure").inner_text()
    page.fill("#search", "#4")
    page.press("#search", "Enter")
    assert page.locator("#selected-title").inner_text() == "Selected rows: 1"
    browser.close()
